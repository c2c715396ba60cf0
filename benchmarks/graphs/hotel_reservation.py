"""DeathStarBench's hotelReservation, under its wrk2 mix: 60 % search, 39 % recommend, 0.5 % log in, 0.5 % reserve.

A search asks for nearby hotels, their rates, whether they have rooms, and their profiles.
"""

from benchmarks.graphs.app import app, with_store

HOTEL_RESERVATION = app(
    "hotel-reservation",
    [
        ("consul", 100, 1),
        ("frontend", 500, 3),
        ("geo", 200, 1),
        ("mongodb-geo", 200, 1),
        ("jaeger", 200, 1),
        ("profile", 400, 2),
        ("memcached-profile", 300, 1),
        ("mongodb-profile", 300, 1),
        ("rate", 300, 2),
        ("memcached-rate", 300, 1),
        ("mongodb-rate", 300, 1),
        ("recommendation", 200, 1),
        ("mongodb-recommendation", 200, 1),
        ("reservation", 300, 2),
        ("memcached-reserve", 300, 1),
        ("mongodb-reservation", 300, 1),
        ("search", 400, 2),
        ("user", 100, 1),
        ("mongodb-user", 200, 1),
    ],
    [
        ("frontend", "search", 60, 900),
        ("frontend", "profile", 99, 3000),
        ("frontend", "reservation", 60.5, 500),
        ("frontend", "recommendation", 39, 400),
        ("frontend", "user", 1, 250),
        ("search", "geo", 60, 500),
        ("search", "rate", 60, 1800),
        with_store("geo", "mongodb-geo", 2, 800),
        with_store("rate", "memcached-rate", 60, 1700),
        with_store("rate", "mongodb-rate", 8, 1800),
        with_store("profile", "memcached-profile", 99, 2800),
        with_store("profile", "mongodb-profile", 12, 3000),
        with_store("recommendation", "mongodb-recommendation", 1, 800),
        with_store("reservation", "memcached-reserve", 121, 400),
        with_store("reservation", "mongodb-reservation", 14, 600),
        with_store("user", "mongodb-user", 1, 400),
        ("frontend", "consul", 1, 300),
        ("search", "consul", 1, 300),
        ("frontend", "jaeger", 10, 400),
        ("search", "jaeger", 6, 400),
        ("profile", "jaeger", 6, 400),
        ("reservation", "jaeger", 6, 400),
        ("rate", "jaeger", 6, 400),
    ],
)

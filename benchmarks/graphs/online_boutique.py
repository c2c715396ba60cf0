"""Google's microservices-demo: eleven services and a Redis.

Calls follow the frontend's handlers (a home page lists products, converts the price of each of nine, asks for cart,
currencies and an ad) under the load generator's own mix: home 1, set currency 2, product 10, add to cart 2, view cart
3, check out 1 of 19. CPU follows the manifests' requests.
"""

from benchmarks.graphs.app import app

ONLINE_BOUTIQUE = app(
    "online-boutique",
    [
        ("emailservice", 100, 1),
        ("checkoutservice", 100, 1),
        ("recommendationservice", 200, 2),
        ("frontend", 300, 3),
        ("paymentservice", 100, 1),
        ("productcatalogservice", 200, 2),
        ("cartservice", 200, 2),
        ("loadgenerator", 300, 1),
        ("currencyservice", 200, 2),
        ("shippingservice", 100, 1),
        ("redis-cart", 100, 1),
        ("adservice", 200, 1),
    ],
    [
        ("loadgenerator", "frontend", 100, 9000),
        ("frontend", "productcatalogservice", 95, 1500),
        ("frontend", "currencyservice", 260, 250),
        ("frontend", "cartservice", 100, 300),
        ("frontend", "recommendationservice", 74, 400),
        ("frontend", "adservice", 68, 300),
        ("frontend", "shippingservice", 21, 300),
        ("frontend", "checkoutservice", 5, 900),
        ("recommendationservice", "productcatalogservice", 74, 2500),
        ("checkoutservice", "cartservice", 10, 300),
        ("checkoutservice", "productcatalogservice", 11, 500),
        ("checkoutservice", "currencyservice", 16, 250),
        ("checkoutservice", "shippingservice", 10, 300),
        ("checkoutservice", "paymentservice", 5, 300),
        ("checkoutservice", "emailservice", 5, 900),
        ("cartservice", "redis-cart", 110, 350),
    ],
)

NAMED = (
    *(("frontend", name) for name in (
        "productcatalogservice", "currencyservice", "cartservice", "recommendationservice", "shippingservice",
        "checkoutservice", "adservice",
    )),
    *(("checkoutservice", name) for name in (
        "productcatalogservice", "shippingservice", "paymentservice", "emailservice", "currencyservice", "cartservice",
    )),
    ("recommendationservice", "productcatalogservice"),
    ("cartservice", "redis-cart"),
    ("loadgenerator", "frontend"),
)  # fmt: skip
"""Which Services the containers of each Deployment name in their environment (release/kubernetes-manifests.yaml, August
2026).
"""

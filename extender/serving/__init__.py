"""The HTTP ports: connections with deadlines, requests within limits, threads for each kind of caller.

`application.py` is the way in; `listener.py` accepts, `connection.py` parses (uvicorn, h11), `gateway.py` admits
requests and hands them to `workers.py`. `limits.py` has the numbers.
"""

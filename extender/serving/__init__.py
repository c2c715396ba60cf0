"""The HTTP ports: connections within limits, hands shaken by one thread of low priority, and a thread for each
connection that was let in.

`application.py` is the way in; `doorman.py` lets in, `requests.py` reads; `scheduler_answers.py` answers
kube-scheduler, `wsgi.py` people, probes and Prometheus. `limits.py` has the numbers.
"""

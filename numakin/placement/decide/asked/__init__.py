"""What a request becomes before it is decided: within its namespace's quota, and for its whole pod where that is placed
as one.
"""

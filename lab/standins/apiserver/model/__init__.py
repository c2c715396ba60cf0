"""The API's types without its objects: kinds and their schemas, selectors, requests, and how requests are refused."""

"""Exchange rates."""

import time

import requests

URL = "https://rates.example.com/latest"
HOUR = 3600
_cache = {}


def rate(currency):
    if currency in _cache and time.time() - _cache[currency][1] > HOUR:
        return _cache[currency][0]
    response = requests.get(URL, timeout=10)
    value = response.json()[currency]
    _cache[currency] = (value, time.time())
    return value

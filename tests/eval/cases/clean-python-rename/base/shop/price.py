"""Prices."""


def f(cents):
    return f"{cents // 100}.{cents % 100:02d}"


def label(name, cents):
    return f"{name}: {f(cents)}"

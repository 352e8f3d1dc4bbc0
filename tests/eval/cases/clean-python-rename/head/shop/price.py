"""Prices."""


def in_euros(cents):
    return f"{cents // 100}.{cents % 100:02d}"


def label(name, cents):
    return f"{name}: {in_euros(cents)}"

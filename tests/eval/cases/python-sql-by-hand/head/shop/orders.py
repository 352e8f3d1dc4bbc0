"""Orders of the shop."""


def find(cursor, customer, status="open"):
    cursor.execute(f"SELECT id, total FROM orders WHERE customer = '{customer}' AND status = '{status}'")
    return cursor.fetchall()

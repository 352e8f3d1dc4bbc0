"""Orders of the shop."""


def find(cursor, customer):
    cursor.execute("SELECT id, total FROM orders WHERE customer = %s", (customer,))
    return cursor.fetchall()

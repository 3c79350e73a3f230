"""The sieve of Eratosthenes."""

LIMIT = 1000


def primes(limit: int) -> list[int]:
    """Return the primes below a limit."""
    flags = [True] * limit
    found = []
    for number in range(2, limit):
        if flags[number]:
            found.append(number)
            for multiple in range(number * number, limit, number):
                flags[multiple] = False
    return found


if __name__ == "__main__":
    print(*primes(LIMIT))

"""What floating-point numbers can do."""

EPS = 2.0**-52  # relative spacing of floating-point numbers: the only place where |F| itself counts
TINY = 1e-300  # lower limit of divisors
LARGEST_ROOT = 1e150  # its square, and that square times a number of ordinary size, is still a floating-point number

"""Random numbers: the Philox generator, the families of random directions, and the compiled loops that draw them."""

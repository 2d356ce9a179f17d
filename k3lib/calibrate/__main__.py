"""Fit the speed model to the project's runs and store the result with the data."""

from k3lib.calibrate import store

if __name__ == "__main__":
    store.write(store.make(), store.STORED, store.fingerprint())

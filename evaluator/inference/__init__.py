"""Asking models over a network: their files and prices, what an answer costs, and how a request is sent."""

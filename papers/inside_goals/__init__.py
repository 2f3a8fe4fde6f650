"""Training inside goals beside fairlearn's ExponentiatedGradient and a linear classifier with constraints."""

"""How often goals hold on the population, with and without margins."""

"""Whether promises hold on the population: goals with margins, proofs, audits and monitors."""

"""Mathematics without data: losses, risks, guarantees, confidence."""

"""`python -m flux.bench layer|model`: transformer layers by FLUX and by other ways of torch, timed side by side."""

"""`python -m flux.bench layer|model`: transformer layers by FLUX and by other ways of torch, timed side by side;
`python -m flux.bench overhead`: what Python adds to a call."""

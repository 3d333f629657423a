"""What every route needs: keys, tokens, rates, bodies, problem documents."""

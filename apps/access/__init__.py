"""Who a visitor has proved to be, and what that opens: levels and grants, signed identities, tokens, signatures."""

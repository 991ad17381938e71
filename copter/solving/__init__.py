"""How a solve is run: one LP once, a session's warm solve, and the interior point as a cold start."""

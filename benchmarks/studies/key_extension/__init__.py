"""Key extension: a second decomposition, of the switching key (Kim, Lee, Seo, Song, CRYPTO 2023)."""

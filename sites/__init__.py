"""The bundled sample site: an invented town whose pages, facts and questions show Pagewire at work."""

"""The chat for visitors: TypeScript in `src/`, bundled into `gateway/static/widget.js`."""

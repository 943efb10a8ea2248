.PHONY: build build-fast
build:
	@node scripts/build.mjs
build-fast:
	@node scripts/build.mjs --fast
serve:
	@node scripts/serve.mjs

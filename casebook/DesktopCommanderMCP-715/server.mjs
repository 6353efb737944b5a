// Starts Desktop Commander as it is installed.
process.argv.push("--no-onboarding");
await import("@wonderwhy-er/desktop-commander/dist/index.js");

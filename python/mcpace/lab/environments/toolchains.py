"""Installation hints for tools that only some adapters need."""

from __future__ import annotations

REMEDIES = {
    "cargo": "see rustup.rs, or apt-get install rustup && rustup default stable",
    "go": "apt-get install golang-go, or see go.dev/dl",
    "maven": "apt-get install default-jdk-headless maven (a JDK of 17 or newer)",
    "npm": "apt-get install nodejs npm, or see nodejs.org",
}

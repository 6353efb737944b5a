//! HTTP rules.

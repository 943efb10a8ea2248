//! The native command yard and its client library.

//! Malformed requests, kept as data files in `tests/corpus`: each gets what its revision asks for, none crashes the server or
//! stalls others, and the next request is served.

mod http;
mod messages;
mod text;

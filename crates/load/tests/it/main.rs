//! The engine against targets that do what a script says: is what it reports what really happened?

mod calls;
mod faults;
mod load;
mod server;
mod truth;

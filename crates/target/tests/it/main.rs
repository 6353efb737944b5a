//! Dialogues with targets over real sockets. Nothing here looks at the clock: order and bytes tell.

mod client;
mod faults;
mod life;
mod oauth;
mod protocol;
mod timing;

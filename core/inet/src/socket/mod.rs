//! The socket calls, by what they do.
//!
//! | file | calls |
//! |---|---|
//! | `names` | open, bind, local, remote |
//! | `connections` | listen, accept, connect, shutdown, close, abort |
//! | `stream` | send, receive |
//! | `state` | poll, options, errors, datagrams received |
//! | `listing` | all sockets, for tools |

mod connections;
mod listing;
mod names;
mod state;
mod stream;

pub use listing::SocketEntry;

//! Tests that take several modules together.

mod headers;
mod order;
mod tx_queue;

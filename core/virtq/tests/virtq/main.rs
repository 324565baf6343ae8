//! Queues against a simulated device, over a simulated bus.

mod honest;
mod hostile;
mod random;

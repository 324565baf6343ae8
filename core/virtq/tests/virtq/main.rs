//! Queues against a simulated device, over a simulated bus.

mod device;
mod honest;
mod hostile;

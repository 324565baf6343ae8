//! Packet buffers: shared DMA-able memory cut into slices and chained.
#![no_std]

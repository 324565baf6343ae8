//! The machine as drivers see it: MMIO, DMA memory, PCI functions, frame ports.
#![no_std]

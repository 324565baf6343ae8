//! The safe machine: CPUs, address spaces, contexts, DMA, interrupts.
#![no_std]

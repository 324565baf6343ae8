//! Virtio devices over PCI and MMIO: discovery, features, queues' doorbells.
#![no_std]

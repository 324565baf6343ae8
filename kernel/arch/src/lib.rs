//! x86-64: entry, descriptor tables, context switch, APIC.
#![no_std]

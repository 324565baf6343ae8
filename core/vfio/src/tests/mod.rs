//! The rules, beside Linux's.

mod config;
mod irq_set;
mod layouts;
mod mappings;
mod pieces;

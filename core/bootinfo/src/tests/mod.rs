mod map;
mod multiboot2;

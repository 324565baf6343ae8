// Exits at once, without a C library: what is left of fork and execve is the kernel's.
__attribute__((noreturn)) void _start(void) {
    asm volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11", "memory");
    __builtin_unreachable();
}

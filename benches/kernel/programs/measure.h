// What the measuring programs share: the clock that counts instructions, a row of the
// table, and the setup that ends the program when something that must work does not.
//
// QEMU's `-icount shift=0` advances the time-stamp counter by one for each instruction of
// the guest, so a difference of two readings is exact. A reading itself takes a few
// instructions; `since` takes them off.
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <x86intrin.h>

enum { PAGE = 4096 };

// Instructions that this machine has executed.
static inline uint64_t instructions(void) { return __rdtsc(); }

// What a pair of readings costs by itself.
extern uint64_t clock_cost;

// Instructions since the reading `start`.
static inline uint64_t since(uint64_t start) { return instructions() - start - clock_cost; }

// Ends the program with a message unless `condition` holds.
void need(int condition, const char *what);

// Prints the median of `count` samples divided by `parts` as a row of the table. Sorts the
// samples.
void row(const char *name, uint64_t *samples, int count, double parts);

// Takes `count` samples during which the kernel ran nothing else. A sample of millions of
// instructions often holds a tick of the clock at which Linux runs a thread of its own and then
// waits: the time until the next deadline, up to four million, is then counted to the program.
// So these samples are taken by a real-time policy, which such threads do not interrupt; one that
// has an involuntary switch for all that is taken again.
void undisturbed(uint64_t *samples, int count, uint64_t (*sample)(void *), void *argument);

// Checks that the clock counts instructions, and learns its own cost.
void calibrate(void);

// The groups of rows, one file each.
void measure_calls(void);
void measure_faults(void);
void measure_mappings(void);
void measure_processes(const char *child_program);
void measure_signals(void);
void measure_streams(void);
void measure_switches(void);

#endif

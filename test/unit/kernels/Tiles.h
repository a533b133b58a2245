// Tile registers for tests, on a CPU without AMX too.
#ifndef TENON_TEST_KERNELS_TILES_H
#define TENON_TEST_KERNELS_TILES_H

// From now on AMX instructions work in this process: those of the CPU where the operating system
// lets us, else emulated.
void enableTiles();

#endif // TENON_TEST_KERNELS_TILES_H

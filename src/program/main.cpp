// SPDX-License-Identifier: Apache-2.0
// The program, which uses nothing but the public header: the command line, the library and Python
// are one.
#include <trainyard/trainyard.h>

int main(int argc, char** argv) {
  return trainyard::run_program(argc, argv);
}

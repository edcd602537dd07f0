// SPDX-License-Identifier: Apache-2.0
// The version of Trainyard. As long as the first number is 0, the second one rises where a program
// that uses the library may have to change, and the third one where it need not.
#pragma once

#define TRAINYARD_VERSION_MAJOR 0
#define TRAINYARD_VERSION_MINOR 1
#define TRAINYARD_VERSION_PATCH 0
#define TRAINYARD_VERSION_TEXT "0.1.0"

/* SPDX-License-Identifier: MIT */
/* cmocka, with the headers that it needs included first. */
#ifndef UNIT_DRIVER_TEST_H
#define UNIT_DRIVER_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif

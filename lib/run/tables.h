/* SPDX-License-Identifier: MIT */
/* How tables of members are written. */
#ifndef LIB_RUN_TABLES_H
#define LIB_RUN_TABLES_H

#include "members.h"

/* clang-format off */
#define MEMBERS(structure, type_) \
	{.type = #type_, .size = sizeof(structure), .list = type_##_table, .count = ARRAY_SIZE(type_##_table)}
#define MEMBER(type, kind_, field) \
	.name = #field, .kind = RUN_KIND_##kind_, .offset = offsetof(type, field)
#define TEXT(type, field) \
	{MEMBER(type, TEXT, field), .size = sizeof(((type *)NULL)->field)}
#define STRING(type, field) \
	{MEMBER(type, STRING, field), .optional = true}
#define NUMBER(type, field) \
	{MEMBER(type, NUMBER, field), .optional = true}
#define COUNT(type, field) \
	{MEMBER(type, U64, field), .counts = true}
#define COUNTERS(type, field, table) \
	{MEMBER(type, COUNTERS, field), .set = #field, .names = (table), .size = ARRAY_SIZE(table), \
	 .counts = true}
#define STAGES(type, field, table, number) \
	{MEMBER(type, STAGES, field), .set = #field, .names = (table), .size = (number), .counts = true}
/* clang-format on */

#endif

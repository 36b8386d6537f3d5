#pragma once
#define STD_TORCH_CHECK(condition, ...)

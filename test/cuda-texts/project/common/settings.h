#ifndef HEAT_SETTINGS_H
#define HEAT_SETTINGS_H
const float kMiddle = 0.5f, kSide = 0.25f;
constexpr float kScale = 3.0f;
#endif  // HEAT_SETTINGS_H
